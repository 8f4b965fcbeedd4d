# jobgen slurm --site ./site.toml --gpus-per-node rtxa6000:2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=rtxa6000:2
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=debug
# jobgen: note: the launcher is srun, that of site site
