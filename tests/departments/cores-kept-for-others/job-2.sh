# jobgen slurm --site ./site.toml --nodes 1 --queue cpu --accelerator cpu --ranks-per-node 32 --cpus-per-rank 1 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --mem=250G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=cpu
# jobgen: note: the launcher is srun, that of site site
