# jobgen slurm --site ./site.toml --nodes 2 --ranks-per-node 4 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=5
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=batch
# jobgen: note: the launcher is srun, that of site site
