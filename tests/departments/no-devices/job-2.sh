# jobgen slurm --site ./site.toml --nodes 1 --queue fat --ranks-per-node 8 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=fat
# jobgen: note: the launcher is srun, that of site site
